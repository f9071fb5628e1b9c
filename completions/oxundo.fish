# Completion of oxundo, and of git oxundo, for fish. 'oxundo completions fish' prints it.

function __oxundo_complete --description 'What the word at the cursor may become'
    command -q oxundo
    or return
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # What stands before git's subcommand is git's.
    set -l at (contains -i -- oxundo $words)
    and test "$at" -gt 1
    and set words $words[$at..-1]
    for line in (oxundo __complete (count $words) $words "$current" 2>/dev/null)
        switch $line
            case \tfiles
                __fish_complete_path $current
            case \tdirs
                __fish_complete_directories $current
            case \tcommand\t\*
                set -l from (math (string split \t -- $line)[3] + 1)
                set -l command (string escape -- $words[$from..-1]) $current
                complete -C (string join ' ' -- $command)
            case '*'
                printf '%s\n' $line
        end
    end
end

complete -c oxundo -f -k -a '(__oxundo_complete)'
complete -c git-oxundo -f -k -a '(__oxundo_complete)'
complete -c git -n 'functions -q __fish_git_using_command; and __fish_git_using_command oxundo' -f -k -a '(__oxundo_complete)'
