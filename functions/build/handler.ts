import { buildEnv } from "#functions/build/env.ts";
import { wireBuild } from "#functions/build/wire.ts";
import { parseEnv } from "#shared/lambda/parse-env.ts";

export const handler = wireBuild(parseEnv(buildEnv));
