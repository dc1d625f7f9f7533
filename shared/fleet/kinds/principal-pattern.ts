import { boundedText } from "#shared/base/bounded.ts";

/** API Gateway names a session of a role without the path of the role. */
export const noRolePath = [
  /^(?!.*:role\/[^/]*\/)/,
  "must name the role without its path, which the sessions of a role do not have, such as arn:aws:iam::111122223333:role/sre",
] as const;

const desired =
  "must be the ARN of a role or user, such as arn:aws:iam::111122223333:role/sre, with * for any part of a name";

/** A pattern of the ARNs of users and roles; `*` stands for any part of a name. */
export const principalPattern = boundedText(300)
  .regex(/^arn:[^:\s]+:iam::[^:\s]+:(role|user)\/\S+$/, desired)
  .regex(...noRolePath);
