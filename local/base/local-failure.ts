export interface LocalFailureDetail {
  /** `no`: refused by whoever was asked. `wrongInput`: something else has to be given. `unknown`: something is missing. */
  readonly exit: "no" | "wrongInput" | "unknown";
  /** The command that gets further. */
  readonly next: string;
  readonly cause?: unknown;
}

/** Why Starling does not start on this machine, for the person who started it. */
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
