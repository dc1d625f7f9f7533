/** Versions of API servers: the oldest has what Starling asks for (aggregated discovery, strict validation of fields). */
export const oldestSupported = "1.30";
/** By the suites and recorded answers. */
export const newestTested = "1.36";

/** What is to be said of `v1.34.2-eks-1a2b3c4`; one that cannot be read is older than what is known. */
export function versionProblem(gitVersion: string): "older" | "newer" | undefined {
  const minor = minorOf(gitVersion);
  if (minor < minorOf(oldestSupported)) return "older";
  return minor > minorOf(newestTested) ? "newer" : undefined;
}

function minorOf(version: string): number {
  const [, major, minor] = /^v?(\d{1,3})\.(\d{1,3})/.exec(version) ?? [];
  return major === undefined ? 0 : Number(major) * 1000 + Number(minor);
}
