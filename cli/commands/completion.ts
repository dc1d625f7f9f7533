import type { ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";

/** Scripts that call `starling complete -- WORDS`. The last word is the one that is being typed. */
const scripts: Readonly<Record<string, string>> = {
  bash: `_starling() {
  local line words
  # COMP_WORDS splits words at colons, which names may have.
  words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(starling complete -- "\${words[@]}" 2>/dev/null)
}
complete -o default -F _starling starling
`,
  zsh: `#compdef starling
_starling() {
  local -a found
  found=("\${(@f)$(starling complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("\${(@)found:#}")
  (( \${#found} )) && compadd -a found || _files
}
compdef _starling starling
`,
  fish: `function __starling_complete
    set -l words (commandline -opc)
    starling complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c starling -f -a '(__starling_complete)'
complete -c starling -s f -l filename -r -F
`,
};

/** Prints a script for `source <(starling completion bash)`. The script asks the command for all words. */
export async function completion(session: Session, shell: string): Promise<ExitReason> {
  session.io.out(scripts[shell] ?? "");
  return "done";
}
