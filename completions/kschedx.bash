# bash completion of kschedx, printed by `kschedx completion bash`

_kschedx_completion() {
    local IFS=$'\n' candidate index
    local -a typed=()
    for ((index = 0; index <= COMP_CWORD; index++)); do
        # bash takes --option=value for three words
        if [[ ${COMP_WORDS[index]} == = ]] && ((index < COMP_CWORD)); then continue; fi
        typed+=("${COMP_WORDS[index]}")
    done
    COMPREPLY=()
    while read -r candidate; do
        [[ -n $candidate ]] && COMPREPLY+=("$candidate")
    done < <(
        COMP_WORDS="${typed[*]}" COMP_CWORD=$((${#typed[@]} - 1)) _KSCHEDX_COMPLETE=complete_bash \
            "${1/#\~/$HOME}" 2> /dev/null
    )
}

complete -o default -F _kschedx_completion kschedx
