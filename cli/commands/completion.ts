import type { Command } from "commander";
import type { ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";

const kinds = "source cluster syncgroup sync rollout";

/** Completes verbs, flags and kinds; names would need a request for every key. */
export async function completion(session: Session, program: Command): Promise<ExitReason> {
  const cases = commandPaths(program, []).map(
    ({ path, words }) => `    "${path.join(" ")}") words="${words.join(" ")}" ;;`,
  );
  session.io.out(`_starling() {
  local words path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  case "$path" in
${cases.join("\n")}
    *) words="" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _starling starling
`);
  return "done";
}

function commandPaths(
  command: Command,
  path: readonly string[],
): { path: readonly string[]; words: readonly string[] }[] {
  const visible = new Set(command.createHelp().visibleCommands(command));
  const children = command.commands.filter((child) => visible.has(child));
  const flags = command.options.flatMap((option) => option.long ?? []);
  const takesKind = command.registeredArguments.some((argument) => ["kind", "object"].includes(argument.name()));
  const words = [...children.map((child) => child.name()), ...(takesKind ? kinds.split(" ") : []), ...flags];
  const below = children.flatMap((child) => commandPaths(child, [...path, child.name()]));
  return [{ path, words }, ...below];
}
