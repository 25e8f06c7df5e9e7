# bash completion of kschedx, printed by `kschedx completion bash`

_kschedx_completion() {
    local IFS=$'\n' candidate index word last=0 joined=
    local -a typed=()
    # bash takes --option=value, zone=name, and node:key for three words
    for ((index = 0; index <= COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if [[ $index -gt 0 && ( $word == "=" || $word == ":" ) ]]; then
            if [[ $word == "=" && ${typed[last]} == -* ]]; then
                joined=
                ((index == COMP_CWORD)) && typed+=("")
            else
                typed[last]+=$word
                joined=${typed[last]}
            fi
        elif [[ -n $joined ]]; then
            typed[last]+=$word
            ((index == COMP_CWORD)) || joined=
        else
            typed+=("$word")
        fi
        last=$((${#typed[@]} - 1))
    done
    COMPREPLY=()
    while read -r candidate; do
        [[ -n $candidate ]] && COMPREPLY+=("${candidate#"$joined"}")
    done < <(
        COMP_WORDS="${typed[*]}" COMP_CWORD=$((${#typed[@]} - 1)) _KSCHEDX_COMPLETE=complete_bash \
            "${1/#\~/$HOME}" 2> /dev/null
    )
}

complete -o default -F _kschedx_completion kschedx
