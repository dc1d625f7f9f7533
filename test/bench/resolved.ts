export interface Resolved {
  readonly ms: number;
  readonly peakRssMiB: number;
  readonly digest: string;
  readonly files: number;
  /** The message of the Source's condition. */
  readonly said: string;
}

/** The limits of memory, which hold on any machine. */
const limits = { "fetch of a whole repository": 1024, "fetch of a folder": 300 } as const;

/** Says what does not hold, and has to at any speed. */
export function faultsOf(
  { digest, files, peakRssMiB, said }: Resolved,
  expected: { readonly what: keyof typeof limits; readonly digest?: string; readonly files?: number },
): string[] {
  const most = limits[expected.what];
  return [
    ...(expected.digest !== undefined && digest !== expected.digest
      ? [`the ${expected.what} has the digest ${digest}, and git's files have ${expected.digest}: ${said}`]
      : []),
    ...(expected.files !== undefined && files !== expected.files
      ? [`the ${expected.what} has ${files} files, and there are ${expected.files}: ${said}`]
      : []),
    ...(peakRssMiB > most ? [`the ${expected.what} took ${peakRssMiB} MiB; ${most} are allowed`] : []),
  ];
}
