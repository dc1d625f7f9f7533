/** The commands below `starling source`. */
import { Argument, type Command } from "commander";
import type { VerifyOptions } from "#cli/commands/source-verify.ts";
import type { AddCommand } from "#cli/session/add-command.ts";

export function sourceCommands(program: Command, add: AddCommand): void {
  const source = program.command("source").description("Find, read and verify the artifacts of a Source.");
  add(source, "verify", async (session, args, options: VerifyOptions) =>
    (await import("#cli/commands/source-verify.ts")).verify(session, args[0] ?? "", options),
  )
    .description("Show which signature of a Source was verified, and with which key. Exit 1 when none was.")
    .addArgument(new Argument("<source>", "name of a Source"))
    .option("--commit <commit>", "verify this commit, also before Starling has it (with your own git)")
    .option("--tag <tag>", "verify this tag, also before Starling has it (with your own git)")
    .option("--chart-version <version>", "show this version of a chart");
}
