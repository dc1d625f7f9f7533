import { azureDevops } from "#functions/webhook/hosts/azure-devops.ts";
import { bitbucket } from "#functions/webhook/hosts/bitbucket.ts";
import { bitbucketServer } from "#functions/webhook/hosts/bitbucket-server.ts";
import { generic } from "#functions/webhook/hosts/generic.ts";
import type { GitHost } from "#functions/webhook/hosts/git-host.ts";
import { gitea } from "#functions/webhook/hosts/gitea.ts";
import { github } from "#functions/webhook/hosts/github.ts";
import { gitlab } from "#functions/webhook/hosts/gitlab.ts";

/** The hosts by the last segment of the URL to which they send. */
export const gitHosts: ReadonlyMap<string, GitHost> = new Map<string, GitHost>([
  ["github", github],
  ["gitlab", gitlab],
  ["gitea", gitea],
  ["bitbucket", bitbucket],
  ["bitbucket-server", bitbucketServer],
  ["azuredevops", azureDevops],
  ["generic", generic],
]);
