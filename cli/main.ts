import { runCli } from "#cli/run.ts";
import { processIo } from "#cli/session/io.ts";

process.exitCode = await runCli(process.argv.slice(2), processIo());
