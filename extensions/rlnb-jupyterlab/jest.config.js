// Pure modules only: what draws is tried in a browser, by tests/ of the Python package.
module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/ts/tests/**/*.test.ts'],
  transform: { '\\.ts$': ['ts-jest', { tsconfig: 'ts/tests/tsconfig.json' }] }
};
