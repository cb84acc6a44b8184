# Writes the software bill of materials of a program, as SPDX 2.3:
# cmake -DPROGRAM=… [-DEMULATOR=…] -DVERSION=… -DOUTPUT=… -P sbom.cmake
# What it is made of, the program says itself, if need be in an emulator; when, SOURCE_DATE_EPOCH.
execute_process(COMMAND ${EMULATOR} ${PROGRAM} --version OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
file(SHA256 ${PROGRAM} digest)
string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC)

set(packages "")
set(relationships "")
string(REPLACE "\n" ";" lines "${said}")
foreach(line IN LISTS lines)
  if(line MATCHES "^linked in: (.*)$")
    set(relation STATIC_LINK)
  elseif(line MATCHES "^shared: (.*)$")
    set(relation DYNAMIC_LINK)
  elseif(line MATCHES "^loaded when [^:]*: (.*)$")
    set(relation OPTIONAL_DEPENDENCY_OF)
  else()
    continue()
  endif()
  string(REPLACE ", " ";" components "${CMAKE_MATCH_1}")
  foreach(component IN LISTS components)
    string(REGEX MATCH "^(.*) ([^ ]+) \\((.*)\\)$" matched "${component}")
    set(name "${CMAKE_MATCH_1}")
    set(version "${CMAKE_MATCH_2}")
    set(licence "${CMAKE_MATCH_3}")
    string(REGEX REPLACE "[^A-Za-z0-9.]" "-" id "SPDXRef-${name}")
    string(APPEND packages ",
    {
      \"SPDXID\": \"${id}\",
      \"name\": \"${name}\",
      \"versionInfo\": \"${version}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"NOASSERTION\",
      \"licenseDeclared\": \"${licence}\",
      \"copyrightText\": \"NOASSERTION\"
    }")
    if(relation STREQUAL OPTIONAL_DEPENDENCY_OF)
      set(from ${id})
      set(to SPDXRef-redlock-cli)
    else()
      set(from SPDXRef-redlock-cli)
      set(to ${id})
    endif()
    string(APPEND relationships ",
    {\"spdxElementId\": \"${from}\", \"relationshipType\": \"${relation}\", \
\"relatedSpdxElement\": \"${to}\"}")
  endforeach()
endforeach()

file(WRITE ${OUTPUT} "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"redlock-cli-${VERSION}\",
  \"documentNamespace\": \"https://spdx.org/spdxdocs/redlock-cli-${VERSION}-${digest}\",
  \"creationInfo\": {\"created\": \"${created}\", \
\"creators\": [\"Tool: redlock-cli-packaging-sbom.cmake\"]},
  \"packages\": [
    {
      \"SPDXID\": \"SPDXRef-redlock-cli\",
      \"name\": \"redlock-cli\",
      \"versionInfo\": \"${VERSION}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"${digest}\"}],
      \"licenseConcluded\": \"MIT\",
      \"licenseDeclared\": \"MIT\",
      \"copyrightText\": \"Copyright (c) 2026 the redlock-cli authors\"
    }${packages}
  ],
  \"relationships\": [
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \
\"relatedSpdxElement\": \"SPDXRef-redlock-cli\"}${relationships}
  ]
}
")
