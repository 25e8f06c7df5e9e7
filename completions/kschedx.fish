# fish completion of kschedx, printed by `kschedx completion fish`

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
