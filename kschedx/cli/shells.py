"""`kschedx completion`: the script by which a shell completes kschedx. `completions/` contains what it prints.

The shell runs kschedx with _KSCHEDX_COMPLETE set, and reads one candidate per line. It evaluates nothing that kschedx
prints, since names come from clusters.
"""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

import typer

from kschedx.cli.options import Command, argument

COMMAND = Command(
    "Print the completion script of a shell",
    no_args_is_help=True,
    own={
        "shell": argument("bash|zsh|fish"),
    },
    help="""Print the completion script of a shell.

\b
Examples:
  source <(kschedx completion bash)
  kschedx completion zsh > "${fpath[1]}/_kschedx"
  kschedx completion fish > ~/.config/fish/completions/kschedx.fish

Pods, workloads, nodes, and namespaces are completed from --snapshot, or from the live cluster.
""",
)

_BASH = r"""# bash completion of kschedx, printed by `kschedx completion bash`

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
"""

_ZSH = r"""#compdef kschedx
# zsh completion of kschedx, printed by `kschedx completion zsh`

_kschedx() {
    local line name
    local -a lines described
    lines=("${(@f)$(
        _TYPER_COMPLETE_ARGS="${words[1,CURRENT]}" _TYPER_COMPLETE_FISH_ACTION=get-args \
            _KSCHEDX_COMPLETE=complete_fish ${~words[1]} 2> /dev/null
    )}")
    for line in $lines; do
        name=${${line%%$'\t'*}//:/\\:}
        if [[ $line == *$'\t'* ]]; then
            described+=("$name:${line#*$'\t'}")
        elif [[ -n $name ]]; then
            described+=("$name")
        fi
    done
    if (( $#described )); then
        _describe -V kschedx described
    else
        _files
    fi
}

if [[ $funcstack[1] == _kschedx ]]; then
    _kschedx "$@"
else
    compdef _kschedx kschedx
fi
"""

_FISH = r"""# fish completion of kschedx, printed by `kschedx completion fish`

function __kschedx_candidates
    set -l typed (commandline --current-process --tokenize --cut-at-cursor)
    set -l found (env _TYPER_COMPLETE_ARGS=(commandline --current-process --cut-at-cursor) \
        _TYPER_COMPLETE_FISH_ACTION=get-args _KSCHEDX_COMPLETE=complete_fish $typed[1] 2> /dev/null)
    if test -n "$found"
        printf '%s\n' $found
    else
        __fish_complete_path (commandline --current-token --cut-at-cursor)
    end
end

complete --command kschedx --no-files --keep-order --arguments '(__kschedx_candidates)'
"""


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"

    @property
    def file(self) -> str:
        """The file's name in the shell's own folders of completions."""
        return "_kschedx" if self is Shell.ZSH else f"kschedx.{self}"


def script(shell: Shell) -> str:
    match shell:
        case Shell.BASH:
            return _BASH
        case Shell.ZSH:
            return _ZSH
        case Shell.FISH:
            return _FISH
        case _:
            assert_never(shell)


def completion(shell: Shell) -> int:
    typer.echo(script(shell), nl=False)
    return 0
