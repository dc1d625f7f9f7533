/** Who a request comes from, as TokenReview and SelfSubjectReview describe it (`userInfo`). */
export interface User {
  readonly username: string;
  readonly uid?: string;
  /** Groups as the credentials give them; the server adds `system:authenticated`. */
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}
