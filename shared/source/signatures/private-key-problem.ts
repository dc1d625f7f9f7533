/** The words for a private key in the place of a public one, whatever the kind of key. */
export const privateKeyProblem = "is a private key: revoke it, and give the public key of another one";
