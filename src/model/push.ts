export interface AuthenticationInfo {
  readonly scheme: string;
  readonly credentials?: string;
}

export interface TaskPushNotificationConfig {
  readonly id?: string;
  readonly taskId?: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: AuthenticationInfo;
}
