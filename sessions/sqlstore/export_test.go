package sqlstore

// LongSession is how many entries one transaction of an erasure erases.
const LongSession = longSession
