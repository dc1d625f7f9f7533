import type * as z from "zod";

/**
 * The environment of a function, checked once: all problems are reported together, by name; values are never printed.
 * @param variables - the process's own, unless somebody runs the function in a process of theirs.
 * @throws Error naming every variable that is missing or malformed.
 */
export function parseEnv<T>(
  schema: z.ZodType<T>,
  // biome-ignore lint/style/noProcessEnv: this is the one place where a function reads its environment
  variables: Readonly<Record<string, string | undefined>> = process.env,
): T {
  const parsed = schema.safeParse(variables);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
  throw new Error(`environment variables are wrong: ${problems.join("; ")}`);
}
