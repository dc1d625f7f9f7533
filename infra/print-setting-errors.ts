import { SettingError } from "#infra/setting-error.ts";

/** The exit code of `starling` for wrong input, too. */
const wrongInput = 2;

/** Runs a command. Wrong settings are printed, one line for each problem; any other error is a defect, and keeps its stack trace. */
export function printSettingErrors(run: () => void): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof SettingError)) throw error;
    for (const problem of error.message.split("\n")) console.error(`error: ${problem}`);
    // A process that ends by itself lets the CDK write templates before.
    process.exit(wrongInput);
  }
}
