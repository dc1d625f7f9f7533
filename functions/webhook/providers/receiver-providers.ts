import { azureDevops } from "#functions/webhook/providers/azure-devops.ts";
import { bitbucket } from "#functions/webhook/providers/bitbucket.ts";
import { bitbucketServer } from "#functions/webhook/providers/bitbucket-server.ts";
import { genericOfReceiver } from "#functions/webhook/providers/generic.ts";
import { gitea } from "#functions/webhook/providers/gitea.ts";
import { github } from "#functions/webhook/providers/github.ts";
import { gitlab } from "#functions/webhook/providers/gitlab.ts";
import type { BodyReader, Provider } from "#functions/webhook/providers/provider.ts";
import { acr, dockerHub, gcr, ghcr, harbor, nexus, quay } from "#functions/webhook/providers/registries.ts";
import type { SecretSender, TokenSender } from "#shared/fleet/kinds/receiver.ts";

/** The kinds of senders that know a secret of a Receiver. */
export const secretProviders: Readonly<Record<SecretSender, Provider>> = {
  github,
  gitlab,
  gitea,
  bitbucket,
  "bitbucket-server": bitbucketServer,
  azuredevops: azureDevops,
  generic: genericOfReceiver,
  dockerhub: dockerHub,
  quay,
  acr,
  harbor,
  ghcr,
  nexus,
};

/** The kinds of senders that have a token of an issuer. */
export const tokenProviders: Readonly<Record<TokenSender, BodyReader>> = {
  "generic-oidc": genericOfReceiver,
  gcr,
};
