# Builds redlock-cli from this tree: `nix build`. Not tried with Nix's packages: tests/manifests.sh
# evaluates it without them.
{
  description = "A command-line lock for shell scripts, cron jobs and CI pipelines";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      lines = builtins.split "\n" (builtins.readFile ./CMakeLists.txt);
      found = builtins.concatMap (line:
        let matched = builtins.match "project\\(redlock-cli VERSION ([0-9.]+) .*" line;
        in if matched == null then [ ] else matched) (builtins.filter builtins.isString lines);
    in {
      packages = nixpkgs.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (system:
        let pkgs = nixpkgs.legacyPackages.${system};
        in {
          default = pkgs.stdenv.mkDerivation {
            pname = "redlock-cli";
            version = builtins.head found;
            src = self;
            nativeBuildInputs = with pkgs; [ cmake ninja pkg-config patchelf ];
            buildInputs = with pkgs; [
              asio cli11 fmt hiredis libmd lua5_1 nlohmann_json openssl tl-expected tomlplusplus
            ];
            cmakeFlags = [ "-DBUILD_TESTING=OFF" ];
            # It is loaded when a server wants TLS, so no tool finds that it is needed.
            postFixup = ''
              patchelf --add-rpath ${pkgs.lib.makeLibraryPath [ pkgs.openssl ]} $out/bin/redlock-cli
            '';
            meta = {
              license = pkgs.lib.licenses.mit;
              mainProgram = "redlock-cli";
              platforms = pkgs.lib.platforms.linux;
            };
          };
        });
    };
}
