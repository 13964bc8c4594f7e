// Only modules that draw nothing. The views are tested in a browser, by tests/browser at the root of the repository.
module.exports = {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/ts/tests/**/*.test.ts'],
  transform: { '\\.(ts|js)$': ['ts-jest', { tsconfig: 'ts/tests/tsconfig.json' }] }
};
