export { AuditForwarder } from './forwarder.ts'
