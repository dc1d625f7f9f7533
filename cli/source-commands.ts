/** The commands below `starling source`. */
import { Argument, type Command } from "commander";
import type { ArtifactsOptions } from "#cli/commands/source-artifacts.ts";
import type { PushOptions } from "#cli/commands/source-push.ts";
import type { ResolveOptions } from "#cli/commands/source-resolve.ts";
import type { VerifyOptions } from "#cli/commands/source-verify.ts";
import { type AddCommand, wholeNumber } from "#cli/session/add-command.ts";

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

  add(source, "artifacts", async (session, args, options: ArtifactsOptions) =>
    (await import("#cli/commands/source-artifacts.ts")).artifacts(session, args[0] ?? "", options),
  )
    .description(
      "List the artifacts of a Source that Starling still knows: those of 30 days, and more with `retain`. The newest come first.",
    )
    .addArgument(new Argument("<source>", "name of a Source"))
    .option("--limit <n>", "list at most this many", wholeNumber, 20);

  add(source, "resolve", async (session, args, options: ResolveOptions) =>
    (await import("#cli/commands/source-resolve.ts")).resolveArtifact(session, args[0] ?? "", options),
  )
    .description("Show one artifact of a Source: by default the present one.")
    .addArgument(new Argument("<source>", "name of a Source"))
    .option("--revision <revision>", "show the artifact of this commit, tag, version or digest")
    .option(
      "--as-of <time>",
      "show the artifact that was present at this time, or this long ago: 2026-11-22T18:00:00Z, 2h",
    )
    .option("--download <file>", "also write its tar.gz into this file, and verify its digest (for readers)");

  add(source, "push", async (session, args, options: PushOptions) =>
    (await import("#cli/commands/source-push.ts")).pushSource(session, args[0] ?? "", options),
  )
    .description("Push a folder to a Source with spec.external, as a version.")
    .addArgument(new Argument("<source>", "name of a Source"))
    .requiredOption("--as <version>", "version of the content, such as 1.4.0 or a commit; it is never used twice")
    .requiredOption("--dir <folder>", "folder whose files are pushed")
    .option("--origin <text>", "origin of the files, such as a commit and its repository; the artifact keeps it")
    .option("--wait", "wait until it is accepted; fails with the reason if it is refused");
}
