// Starts a broker on a new data folder and stops it when it is healthy: node prepare.mjs FOLDER
import { startBroker } from './broker.mjs'

const broker = await startBroker({ dataDir: process.argv[2] })
await broker.stop()
