export interface FuzzedParser {
  readonly name: string;
  /** Right inputs, from which wrong ones are made. */
  samples(): readonly Buffer[] | Promise<readonly Buffer[]>;
  /** Makes a changed input pass a checksum, so that what is behind it is reached. */
  readonly repair?: (bytes: Buffer) => Buffer;
  /**
   * Parses, and checks the answer, often with another program.
   * @throws StarlingError or ManifestError for an input that is refused; anything else is a fault.
   */
  run(bytes: Buffer, samples: readonly Buffer[]): unknown;
  /** How many inputs are tried, of a hundred; some parsers take milliseconds. */
  readonly share?: number;
}

/** @returns the value as it is made once. */
export const once = <Value>(make: () => Promise<Value>): (() => Promise<Value>) => {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make();
    return made;
  };
};
