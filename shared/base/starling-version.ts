/** The version of package.json: what API servers see as User-Agent. A test holds the two together. */
export const starlingVersion = "0.1.0";
