import { parsePairs } from '../../form/pairs';

describe('parsePairs', () => {
  it('reads JSON, the literals of Python, and strings', () => {
    const text = 'sim.dt = 0.005\nlr=3e-4\nuse=True\noff=false\nnothing=None\nname=newton\nquoted="a b"\npython=\'c d\'\nlist=[1, 2]';
    expect(parsePairs(text)).toEqual({
      values: {
        'sim.dt': 0.005, lr: 0.0003, use: true, off: false, nothing: null, name: 'newton', quoted: 'a b', python: 'c d', list: [1, 2]
      },
      wrong: []
    });
  });

  it('splits at the first equals sign only', () => {
    expect(parsePairs('expr=a=b').values).toEqual({ expr: 'a=b' });
  });

  it('skips empty lines and comments, and lets a later line win', () => {
    expect(parsePairs('\n  # a comment\na=1\n\na=2\n')).toEqual({ values: { a: 2 }, wrong: [] });
  });

  it('returns the lines that are not name=value', () => {
    expect(parsePairs('fine=1\nno pair\n=3\nempty=\ntwo words=1').wrong).toEqual([
      '2: no pair', '3: =3', '4: empty=', '5: two words=1'
    ]);
  });

  it('accepts names that every object has', () => {
    expect(parsePairs('toString=1\na=constructor').values).toEqual({ toString: 1, a: 'constructor' });
  });
});
