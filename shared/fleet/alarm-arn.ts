/** Names of CloudWatch alarms. */

export const alarmArn = /^arn:(aws[\w-]*):cloudwatch:([a-z0-9-]{1,40}):(\d{12}):alarm:(\S.{0,254})$/;

/** `arn:<partition>:cloudwatch:<region>:<account>:alarm:<name>`. */
interface AlarmArn {
  readonly region: string;
  readonly accountId: string;
  readonly name: string;
}

/** @throws Error when the text is not one: the schema has checked it. */
export function parseAlarmArn(arn: string): AlarmArn {
  const [, , region, accountId, name] = alarmArn.exec(arn) ?? [];
  if (region === undefined || accountId === undefined || name === undefined) throw new Error(`${arn} names no alarm`);
  return { region, accountId, name };
}
