import { processIo } from "#cli/io.ts";
import { runCli } from "#cli/run.ts";

process.exitCode = await runCli(process.argv.slice(2), processIo());
