/** The commands below `starling guard`. */
import { Argument, type Command } from "commander";
import type { ApproveOptions } from "#cli/commands/guard-verbs.ts";
import type { AddCommand } from "#cli/session/add-command.ts";

export function guardCommands(program: Command, add: AddCommand): void {
  const guard = program.command("guard").description("List what guards withhold, and approve it.");
  add(guard, "list", async (session, args) =>
    (await import("#cli/commands/guard-verbs.ts")).guardList(session, args[0]),
  )
    .description(
      "List the changes that the guard of a group withholds, with their hashes. Without a group: of every group of the namespace, or with -A of all.",
    )
    .addArgument(new Argument("[group]", "name of a SyncGroup"));

  add(guard, "approve", async (session, args, options: ApproveOptions) =>
    (await import("#cli/commands/guard-verbs.ts")).guardApprove(session, args[0] ?? "", options),
  )
    .description("Let the change with this hash through, and no other one. Requires --reason.")
    .addArgument(new Argument("<group>", "name of a SyncGroup"))
    .requiredOption("--hash <hash>", "hash of the withheld change, as `guard list` prints it");
}
