import { azureDevops } from "#functions/webhook/providers/azure-devops.ts";
import { bitbucket } from "#functions/webhook/providers/bitbucket.ts";
import { bitbucketServer } from "#functions/webhook/providers/bitbucket-server.ts";
import { generic } from "#functions/webhook/providers/generic.ts";
import { gitea } from "#functions/webhook/providers/gitea.ts";
import { github } from "#functions/webhook/providers/github.ts";
import { gitlab } from "#functions/webhook/providers/gitlab.ts";
import type { Provider } from "#functions/webhook/providers/provider.ts";

/** The hosts by the last segment of the URL to which they send. */
export const gitHosts: ReadonlyMap<string, Provider> = new Map<string, Provider>([
  ["github", github],
  ["gitlab", gitlab],
  ["gitea", gitea],
  ["bitbucket", bitbucket],
  ["bitbucket-server", bitbucketServer],
  ["azuredevops", azureDevops],
  ["generic", generic],
]);
