/** The user of a request, as TokenReview and SelfSubjectReview describe it (`userInfo`). */
export interface User {
  readonly username: string;
  readonly uid?: string;
  /** Groups from the credentials; the server adds `system:authenticated`. */
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}
