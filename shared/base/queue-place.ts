/** Hosts of SQS that name their region: `sqs.eu-west-1.amazonaws.com`, those of endpoints in VPCs, and the other forms. */
const hosts =
  /^(?:[\w.-]+\.)?sqs(?:-fips)?\.([a-z]{2,}(?:-[a-z]+)+-\d+)\.(?:vpce\.)?(?:amazonaws\.(?:com(?:\.cn)?|eu)|api\.aws)$/;

/** @returns undefined when the URL names no region, as those of emulators. */
export function regionOfQueue(url: string): string | undefined {
  return URL.canParse(url) ? hosts.exec(new URL(url).hostname)?.[1] : undefined;
}

/** @returns undefined when the URL is none of a queue. */
export function accountOfQueue(url: string): string | undefined {
  return URL.canParse(url) ? /^\/(\d{12})\//.exec(new URL(url).pathname)?.[1] : undefined;
}
