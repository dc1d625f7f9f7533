/** The oldest supported API server: it has aggregated discovery and strict field validation. */
export const oldestSupported = "1.30";
/** The newest version in the test suites and recorded answers. */
export const newestTested = "1.36";

/** Whether a version such as `v1.34.2-eks-1a2b3c4` is out of range. An unreadable version counts as older. */
export function versionProblem(gitVersion: string): "older" | "newer" | undefined {
  const minor = minorOf(gitVersion);
  if (minor < minorOf(oldestSupported)) return "older";
  return minor > minorOf(newestTested) ? "newer" : undefined;
}

function minorOf(version: string): number {
  const [, major, minor] = /^v?(\d{1,3})\.(\d{1,3})/.exec(version) ?? [];
  return major === undefined ? 0 : Number(major) * 1000 + Number(minor);
}
