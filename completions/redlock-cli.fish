# fish completion for redlock-cli(1).
# What may be typed is asked of the program (`redlock-cli completion suggest WORD...`), so there is
# nothing to keep up here.

function __redlock_cli_complete
    set -l typed (commandline -opc) (commandline -ct)
    # Without quotes and escapes, as the program will see it.
    set -l current (string unescape -- "$typed[-1]"; or echo -- "$typed[-1]")
    set -l answer ($typed[1] completion suggest $typed[2..-2] $current 2>/dev/null)
    or return
    set -l kind (string split -m 1 \t -- $answer[1])
    set -l prefix $kind[2]
    set -l begun (string sub -s (math (string length -- "$prefix") + 1) -- "$current")

    switch $kind[1]
        case words beginnings
            __redlock_cli_prefixed "$prefix" $answer[2..-1]
        case files
            __redlock_cli_prefixed "$prefix" (__fish_complete_path "$begun")
        case directories
            __redlock_cli_prefixed "$prefix" (__fish_complete_directories "$begun" '')
        case pid # of those that are accepted, this shell
            echo $fish_pid
        case command
            # As if the command were typed alone, with its own completion.
            set -l first (math $prefix + 2)
            complete -C (string join -- ' ' (string escape -- $typed[$first..-2]) (commandline -ct))
    end
end

function __redlock_cli_prefixed
    for name in $argv[2..-1]
        echo -- $argv[1]$name
    end
end

complete -c redlock-cli -f -a '(__redlock_cli_complete)'
