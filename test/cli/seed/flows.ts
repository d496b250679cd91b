import { seedShop } from '../../support/policy-cluster.ts'
import type { SeededApp } from '../cluster.ts'

export const seedFlows = (app: SeededApp): Promise<void> => seedShop(app)
