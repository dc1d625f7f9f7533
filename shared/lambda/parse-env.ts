import type * as z from "zod";

/**
 * Parses the environment of a function. All problems are reported together, by name. Values are never printed.
 * @param variables - default: the process's own environment.
 * @throws Error with every variable that is missing or malformed.
 */
export function parseEnv<T>(
  schema: z.ZodType<T>,
  // biome-ignore lint/style/noProcessEnv: this is the one place where a function reads its environment
  variables: Readonly<Record<string, string | undefined>> = process.env,
): T {
  const parsed = schema.safeParse(variables);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
  throw new Error(`invalid environment variables: ${problems.join("; ")}`);
}
