/** The exit codes of the command, by the way that it ends. */
export const exitCodes = {
  done: 0,
  /** Not ready, halted, failed, differs, refused. */
  no: 1,
  /** Usage, or a file that is not valid. */
  wrongInput: 2,
  /** Credentials, network, throttled, no such installation. */
  unknown: 3,
  timeout: 4,
  interrupted: 130,
} as const;
export type ExitReason = keyof typeof exitCodes;

export interface FailureDetail {
  readonly exit: ExitReason;
  /** The next command to type. */
  readonly next?: string;
  /** Printed before the message: one line for each problem. */
  readonly lines?: readonly string[];
}

/** An error that ends the command and says what to do next. */
export class CliFailure extends Error {
  readonly exit: ExitReason;
  readonly next: string | undefined;
  readonly lines: readonly string[];

  constructor(message: string, detail: FailureDetail) {
    super(message);
    this.name = "CliFailure";
    this.exit = detail.exit;
    this.next = detail.next;
    this.lines = detail.lines ?? [];
  }
}

export function usageFailure(message: string, next: string): CliFailure {
  return new CliFailure(message, { exit: "wrongInput", next });
}
