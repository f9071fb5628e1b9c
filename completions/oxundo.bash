# Completion of oxundo, and of git oxundo, for bash. 'oxundo completions bash' prints it.

# Completes COMP_WORDS from word $1 on; the words behind $1 stand before them.
_oxundo_complete() {
    local cur=${COMP_WORDS[COMP_CWORD]} begin=$1 at last line value about width=0 before=
    shift
    # bash takes --to=5 for three words; oxundo takes '--to 5' for the same. It takes tree:5 for three as well.
    local -a words=("$@") origin=() lines=() values=() abouts=()
    for ((at = begin; at <= COMP_CWORD; at++)); do
        [[ ${COMP_WORDS[at]} == = && $at -lt $COMP_CWORD ]] && continue
        last=$((${#words[@]} - 1))
        if [[ $at -gt $begin && $COMP_LINE == *"${words[last]}${COMP_WORDS[at]}"* ]] &&
            [[ ${COMP_WORDS[at]} == :* || ${words[last]} == *: ]]; then
            words[last]+=${COMP_WORDS[at]}
            continue
        fi
        origin[${#words[@]}]=$at
        words+=("${COMP_WORDS[at]}")
    done
    if [[ $cur == = ]]; then
        cur=
        words[${#words[@]} - 1]=
    fi
    last=${words[${#words[@]} - 1]}
    # It puts what is offered in the place of what stands behind the colon.
    [[ $COMP_WORDBREAKS == *:* && $last == *:* ]] && before=${last%:*}:
    COMPREPLY=()
    mapfile -t lines < <(oxundo __complete $((${#words[@]} - 1)) "${words[@]}" 2>/dev/null)
    for line in "${lines[@]}"; do
        case $line in
        $'\tfiles')
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
            ;;
        $'\tdirs')
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$cur")
            return
            ;;
        $'\tcommand\t'*)
            at=${origin[${line##*$'\t'}]}
            if declare -F _command_offset >/dev/null; then
                _command_offset "$at"
            elif [[ $at -eq $COMP_CWORD ]]; then
                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
            else
                compopt -o default 2>/dev/null
            fi
            return
            ;;
        esac
        value=${line%%$'\t'*}
        about=${line#*$'\t'}
        ((${#value} > width)) && width=${#value}
        values+=("$value")
        abouts+=("$about")
    done
    compopt -o nosort 2>/dev/null
    # Where bash lists what there is, it can be told what it means.
    if [[ ${#values[@]} -gt 1 && ${COMP_TYPE:-9} -eq 63 ]]; then
        for at in "${!values[@]}"; do
            printf -v line '%-*s  %s' "$width" "${values[at]}" "${abouts[at]}"
            COMPREPLY+=("${line:0:${COLUMNS:-80}-2}")
        done
    else
        for value in "${values[@]}"; do
            printf -v value %q "${value#"$before"}"
            COMPREPLY+=("$value")
        done
        # A turn's number follows.
        [[ ${#values[@]} -eq 1 && ${values[0]} == *: ]] && compopt -o nospace 2>/dev/null
    fi
}

_oxundo() {
    _oxundo_complete 1 oxundo
}

# git's own completion calls it: for 'git oxundo', and for an alias such as 'undo = oxundo undo'.
_git_oxundo() {
    local at
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} == oxundo ]]; then
            _oxundo_complete $((at + 1)) oxundo "${__git_C_args[@]}"
            return
        fi
    done
    local -a alias=()
    at=${__git_cmd_idx:-1}
    read -ra alias < <(git config "alias.${COMP_WORDS[at]}" 2>/dev/null)
    [[ ${alias[0]} == oxundo ]] && _oxundo_complete $((at + 1)) oxundo "${__git_C_args[@]}" "${alias[@]:1}"
}

complete -F _oxundo oxundo git-oxundo
