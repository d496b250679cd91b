/** Name parts of the seeded cluster: realistic names instead of numbered ones. */

/** Namespaces with the things that their teams own. No thing appears twice, since pods are known by their names. */
export const TEAMS: Readonly<Record<string, readonly string[]>> = {
  accounts: ['profile', 'preference', 'avatar'],
  ads: ['campaign', 'bidder', 'creative'],
  analytics: ['clickstream', 'funnel', 'cohort'],
  auth: ['session', 'oauth', 'passkey'],
  backoffice: ['approval', 'casework', 'helpdesk'],
  billing: ['invoice', 'dunning', 'metering'],
  booking: ['reservation', 'availability', 'calendar'],
  cart: ['basket', 'wishlist', 'savedcart'],
  catalog: ['product', 'category', 'attribute'],
  chat: ['message', 'presence', 'transcript'],
  checkin: ['boarding', 'kiosk', 'queueing'],
  claims: ['claimfile', 'adjuster', 'settlement'],
  cms: ['article', 'layout', 'mediakit'],
  compliance: ['consent', 'gdpr', 'sanctions'],
  content: ['banner', 'editorial', 'translation'],
  crm: ['contact', 'lead', 'opportunity'],
  'data-lake': ['ingestion', 'compaction', 'lineage'],
  delivery: ['courier', 'route', 'handover'],
  devices: ['firmware', 'telemetry', 'pairing'],
  discounts: ['coupon', 'promotion', 'giftcard'],
  documents: ['archive', 'signature', 'rendering'],
  email: ['mailing', 'template', 'bounce'],
  events: ['ticket', 'venue', 'seating'],
  experiments: ['variant', 'assignment', 'rollout'],
  exports: ['report', 'csvexport', 'dataset'],
  feeds: ['timeline', 'ranking', 'digestmail'],
  finance: ['journal', 'reconciliation', 'treasury'],
  fraud: ['scoring', 'blocklist', 'velocity'],
  fulfilment: ['picking', 'packing', 'label'],
  gateway: ['edgeroute', 'ratelimit', 'webhook'],
  geo: ['geocoder', 'tile', 'region'],
  identity: ['directory', 'group', 'credential'],
  images: ['thumbnail', 'transcoder', 'watermark'],
  inventory: ['stock', 'warehouse', 'replenish'],
  kyc: ['verification', 'idcheck', 'selfie'],
  loans: ['application', 'underwriting', 'repayment'],
  logistics: ['shipment', 'carrier', 'customs'],
  loyalty: ['points', 'reward', 'membership'],
  marketing: ['audience', 'journey', 'landing'],
  media: ['video', 'playlist', 'subtitle'],
  'ml-serving': ['inference', 'feature', 'embedding'],
  'ml-training': ['trainer', 'labeling', 'evaluation'],
  mobile: ['bff', 'pushtoken', 'appconfig'],
  notifications: ['push', 'sms', 'inbox'],
  onboarding: ['signup', 'tutorial', 'invite'],
  orders: ['order', 'backorder', 'cancellation'],
  partners: ['affiliate', 'supplier', 'marketplace'],
  pricing: ['quote', 'pricelist', 'currency'],
  recommendations: ['similarity', 'trending', 'personalize'],
  returns: ['refund', 'rma', 'inspection'],
  reviews: ['rating', 'moderation', 'comment'],
  search: ['query', 'suggest', 'synonym'],
  subscriptions: ['plan', 'renewal', 'entitlement'],
  support: ['knowledge', 'callback', 'survey'],
  tax: ['vat', 'taxrule', 'einvoice'],
  warranty: ['coverage', 'repair', 'sparepart'],
}

/** Tenants of one namespace that is larger than those of teams. */
export const TENANTS: readonly string[] = (
  'acorn alder aspen beech birch cedar chestnut cypress elderberry elm fir hazel hawthorn hemlock holly juniper larch ' +
  'linden maple oak pine poplar rowan spruce willow'
).split(' ')

/** The workloads of a thing, with kind, number of pods and port. */
export interface Role {
  readonly name: string
  readonly kind: 'Deployment' | 'StatefulSet' | 'CronJob'
  readonly pods: number
  readonly port: string | null
}

export const ROLES: readonly Role[] = [
  { name: 'api', kind: 'Deployment', pods: 6, port: '8080' },
  { name: 'web', kind: 'Deployment', pods: 4, port: '3000' },
  { name: 'worker', kind: 'Deployment', pods: 5, port: null },
  { name: 'consumer', kind: 'Deployment', pods: 4, port: null },
  { name: 'gateway', kind: 'Deployment', pods: 3, port: '8443' },
  { name: 'notifier', kind: 'Deployment', pods: 2, port: null },
  { name: 'indexer', kind: 'Deployment', pods: 2, port: null },
  { name: 'admin', kind: 'Deployment', pods: 1, port: '8081' },
  { name: 'scheduler', kind: 'CronJob', pods: 1, port: null },
  { name: 'cache', kind: 'StatefulSet', pods: 3, port: '6379' },
  { name: 'db', kind: 'StatefulSet', pods: 3, port: '5432' },
  { name: 'exporter', kind: 'Deployment', pods: 1, port: '9187' },
]
