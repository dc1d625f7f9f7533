export interface LocalFailureDetail {
  /**
   * `no`: a program refused the request. `wrongInput`: the user must give another input. `unknown`: something is
   * missing.
   */
  readonly exit: "no" | "wrongInput" | "unknown";
  /** The command to run next. */
  readonly next: string;
  readonly cause?: unknown;
}

/** The reason why the local Starling does not start, for the person who started it. */
export class LocalFailure extends Error {
  readonly exit: LocalFailureDetail["exit"];
  readonly next: string;

  constructor(message: string, { exit, next, cause }: LocalFailureDetail) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "LocalFailure";
    this.exit = exit;
    this.next = next;
  }
}
