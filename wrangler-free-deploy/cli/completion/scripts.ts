/** The scripts with which shells complete a line of `ctb`; `ctb __complete` prints the candidates. */
export const SCRIPTS = {
  bash: `# Completion of ctb for bash, also 3.2: source <(ctb completion bash)
_ctb_complete() {
  local i word line prefix directive=4 n=-1
  local words=()
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # Bash makes words of their own of = and :.
    if ((n >= 0)) && [[ $word == [=:]* || \${COMP_WORDS[i - 1]} == *[=:] ]]; then
      words[n]+=$word
    else
      words[++n]=$word
    fi
  done
  word=\${words[n]}
  prefix=\${word%"\${word##*[=:]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) directive=\${line#:} ;;
      *)
        line=\${line%%$'\\t'*}
        COMPREPLY+=("\${line#"$prefix"}")
        ;;
    esac
  done < <("$1" __complete -- "\${words[@]}" 2>/dev/null)
  ((directive & 2)) && compopt -o nospace 2>/dev/null
  ((directive & 4)) || compopt -o default 2>/dev/null
  return 0
}
complete -F _ctb_complete ctb
`,
  zsh: `#compdef ctb
# Completion of ctb for zsh: source <(ctb completion zsh), or this text as the file _ctb of a folder of $fpath
_ctb() {
  local line directive=4
  local -a candidates spaced
  for line in "\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      :*) directive=\${line#:} ;;
      *$'\\t'*) candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
      *) candidates+=("\${line//:/\\\\:}") ;;
    esac
  done
  ((directive & 2)) && spaced=(-S '')
  (($#candidates)) && _describe candidate candidates $spaced
  ((directive & 4)) || _files
}
if [[ $funcstack[1] == _ctb ]]; then _ctb "$@"; else compdef _ctb ctb; fi
`,
  fish: `# Completion of ctb for fish: ctb completion fish | source
function __ctb_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete -- $words[2..] 2>/dev/null)
        if not string match -q ':*' -- $line
            echo $line
        else if test (math "bitand($(string sub -s 2 -- $line), 4)") -eq 0
            __fish_complete_path (commandline -ct)
        end
    end
end
complete -c ctb -f -a '(__ctb_complete)'
`,
} as const
