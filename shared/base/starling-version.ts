/** The version of package.json, which API servers see as User-Agent. A test compares both. */
export const starlingVersion = "0.1.0";
