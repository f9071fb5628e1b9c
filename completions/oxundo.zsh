#compdef oxundo git-oxundo
#description undo and redo for any coding agent
# Completion of oxundo, and of git oxundo, for zsh. 'oxundo completions zsh' prints it. As a file in $fpath
# it has the name _oxundo, and once more _git-oxundo for git.

_oxundo() {
    local line value
    local -a described open
    for line in "${(@f)$(oxundo __complete $((CURRENT - 1)) "${(@Q)words[1,CURRENT]}" 2>/dev/null)}"; do
        case $line in
        '') ;;
        $'\tfiles')
            [[ $PREFIX == --*=* ]] && compset -P '*='
            _files
            return
            ;;
        $'\tdirs')
            [[ $PREFIX == --*=* ]] && compset -P '*='
            _files -/
            return
            ;;
        $'\tcommand\t'*)
            local at=${line##*$'\t'}
            words=("${(@)words[at + 1,-1]}")
            ((CURRENT -= at))
            _normal
            return
            ;;
        *)
            value=${line%%$'\t'*}
            line="${${value//\\/\\\\}//:/\\:}:${line#*$'\t'}"
            # A turn's number follows a worktree's name.
            if [[ $value == *: ]]; then open+=("$line"); else described+=("$line"); fi
            ;;
        esac
    done
    _describe -V oxundo described -- open -S ''
}

# git's own completion calls it.
_git-oxundo() {
    _oxundo
}

case ${funcstack[1]} in
_oxundo | _git-oxundo) _oxundo ;;
*) compdef _oxundo oxundo git-oxundo ;;
esac
