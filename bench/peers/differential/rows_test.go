package differential

// families are the kinds of commands; each is as likely as any other. What is in none of them: commands that must not
// share a connection (the library refuses them), that answer with chance (SPOP and the RAND ones with less than
// everything, LOLWUT), the clock (TIME, OBJECT IDLETIME), addresses (CLIENT LIST) or what the server did for others
// (INFO, DBSIZE, MEMORY), and expiries that could come true while the test runs.
var families = [][]row{stringRows, hashRows, listRows, setRows, zsetRows, streamRows, bitmapRows, hllRows, geoRows,
	keyRows, keyRows, serverRows, scriptRows, wrongRows}

var stringRows = []row{
	{text: "SET string value"}, {text: "SET string value"}, {text: "SET string value [EX ttl|PX ttlms|EXAT at|PXAT atms|KEEPTTL|GET|XX GET]"},
	{text: "SET string value [NX|XX|NX GET|EX -1|PX 0|XX KEEPTTL]"}, {text: "SETEX string ttl value"}, {text: "PSETEX string ttlms value"},
	{text: "SETNX string value"}, {text: "GET string"}, {text: "GET string"}, {text: "GETSET string value"}, {text: "GETDEL string"},
	{text: "GETEX string [PERSIST|EX ttl|EXAT at|PX ttlms|]"}, {text: "MGET any..."}, {text: "MSET string,value..."}, {text: "MSETNX string,value..."},
	{text: "APPEND string small"}, {text: "STRLEN string"}, {text: "GETRANGE string index index"}, {text: "SUBSTR string index index"},
	{text: "SETRANGE string offset small"}, {text: "INCR string"}, {text: "DECR string"}, {text: "INCRBY string integer"},
	{text: "DECRBY string integer"}, {text: "INCRBYFLOAT string double"}, {text: "SET string integer"}, {text: "SET string decimal"},
	{text: "SET t small", kept: true}, {text: "LCS t t [LEN|IDX|IDX WITHMATCHLEN|IDX MINMATCHLEN count|]", kept: true},
}

var hashRows = []row{
	{text: "HSET hash field,value..."}, {text: "HSET hash field,small..."}, {text: "HMSET hash field,value..."}, {text: "HSETNX hash field value"},
	{text: "HGET hash field"}, {text: "HMGET hash field..."}, {text: "HGETALL hash", shape: pairs}, {text: "HKEYS hash", shape: bag},
	{text: "HVALS hash", shape: bag}, {text: "HLEN hash"}, {text: "HEXISTS hash field"}, {text: "HSTRLEN hash field"}, {text: "HDEL hash field..."},
	{text: "HINCRBY hash field integer"}, {text: "HINCRBYFLOAT hash field double"}, {text: "HSET hash field integer"},
	{text: "HRANDFIELD hash everything", shape: bag, kept: true}, {text: "HRANDFIELD hash everything WITHVALUES", shape: pairs, kept: true},
	{text: "HSCAN hash 0 COUNT everything", shape: scanPairs, kept: true}, {text: "HSCAN hash 0 MATCH f1* COUNT everything", shape: scanPairs, kept: true},
}

var listRows = []row{
	{text: "RPUSH list value..."}, {text: "LPUSH list value..."}, {text: "RPUSHX list small..."}, {text: "LPUSHX list small"}, {text: "LPOP list"},
	{text: "RPOP list"}, {text: "LPOP list count"}, {text: "RPOP list [count|0]"}, {text: "LLEN list"}, {text: "LRANGE list index index"},
	{text: "LRANGE list 0 -1"}, {text: "LINDEX list index"}, {text: "LSET list index value"}, {text: "LINSERT list [BEFORE|AFTER] small small"},
	{text: "LREM list index small"}, {text: "LTRIM list index index"}, {text: "LTRIM list 0 20"}, {text: "RPOPLPUSH list list"},
	{text: "LMOVE list list [LEFT|RIGHT] [LEFT|RIGHT]"}, {text: "LPOS list small [RANK index|COUNT count|MAXLEN count|]"},
	{text: "LMPOP 2 list list [LEFT|RIGHT] [COUNT count|]"}, {text: "SORT list [ALPHA|ALPHA DESC]", shape: bag, kept: true}, {text: "SORT list [LIMIT 1 3|DESC]", kept: true},
	{text: "SORT list BY nosort GET # [GET nothing*|]", shape: bag, kept: true}, {text: "RPUSH sorted small..."}, {text: "LTRIM sorted 0 30", kept: true},
	{text: "SORT sorted [ALPHA|ALPHA DESC LIMIT 2 5] [STORE list|]", kept: true}, {text: "SORT_RO sorted ALPHA", kept: true},
}

var setRows = []row{
	{text: "SADD set member..."}, {text: "SADD set value..."}, {text: "SADD set member..."}, {text: "SREM set member..."}, {text: "SCARD set"},
	{text: "SISMEMBER set member"}, {text: "SMISMEMBER set member..."}, {text: "SMEMBERS set", shape: bag}, {text: "SMOVE set set member"},
	{text: "SUNION set...", shape: bag}, {text: "SINTER set...", shape: bag}, {text: "SDIFF set...", shape: bag}, {text: "SUNIONSTORE set set..."},
	{text: "SINTERSTORE set set..."}, {text: "SDIFFSTORE set set..."}, {text: "SINTERCARD 2 set set [LIMIT count|]"},
	{text: "SRANDMEMBER set everything", shape: bag, kept: true}, {text: "SPOP set everything", shape: bag, kept: true},
	{text: "SSCAN set 0 COUNT everything", shape: scanBag, kept: true}, {text: "SORT set ALPHA", shape: bag, kept: true},
}

var zsetRows = []row{
	{text: "ZADD zset double,member..."}, {text: "ZADD zset double,member..."}, {text: "ZADD zset [NX|XX|GT|LT|CH|XX CH|GT CH|NX GT] double,member..."},
	{text: "ZADD zset [INCR|XX INCR|NX INCR] double member"}, {text: "ZADD zset 0 m1 0 m2 0 m3 0 m4"}, {text: "ZCARD zset"}, {text: "ZSCORE zset member"},
	{text: "ZMSCORE zset member..."}, {text: "ZINCRBY zset double member"}, {text: "ZREM zset member..."}, {text: "ZRANK zset member"},
	{text: "ZREVRANK zset member"}, {text: "ZCOUNT zset score score"}, {text: "ZLEXCOUNT zset lex lex"}, {text: "ZRANGE zset index index [WITHSCORES|REV|REV WITHSCORES|]"},
	{text: "ZRANGE zset score score BYSCORE [LIMIT 1 count|WITHSCORES|]"}, {text: "ZRANGE zset lex lex BYLEX [REV|LIMIT 0 count|]"},
	{text: "ZREVRANGE zset index index [WITHSCORES|]"}, {text: "ZRANGEBYSCORE zset score score [WITHSCORES|LIMIT 0 count|WITHSCORES LIMIT 2 count|]"},
	{text: "ZREVRANGEBYSCORE zset score score"}, {text: "ZRANGEBYLEX zset lex lex"}, {text: "ZREVRANGEBYLEX zset lex lex"},
	{text: "ZREMRANGEBYRANK zset index index"}, {text: "ZREMRANGEBYSCORE zset score score"}, {text: "ZREMRANGEBYLEX zset lex lex"},
	{text: "ZPOPMIN zset [count|]"}, {text: "ZPOPMAX zset [count|]"}, {text: "ZMPOP 2 zset zset [MIN|MAX] [COUNT count|]"},
	{text: "ZUNION 2 zset zset [WITHSCORES|AGGREGATE MAX WITHSCORES|WEIGHTS 2 double WITHSCORES|]"}, {text: "ZINTER 2 zset set [WITHSCORES|]"},
	{text: "ZDIFF 2 zset zset [WITHSCORES|]"}, {text: "ZUNIONSTORE zset 2 zset zset [AGGREGATE MIN|]"}, {text: "ZINTERSTORE zset 2 zset zset"},
	{text: "ZDIFFSTORE zset 2 zset zset"}, {text: "ZINTERCARD 2 zset zset"}, {text: "ZRANGESTORE zset zset index index"},
	{text: "ZRANDMEMBER zset everything WITHSCORES", shape: pairs, kept: true}, {text: "ZSCAN zset 0 COUNT everything", shape: scanPairs, kept: true},
}

var streamRows = []row{
	{text: "XADD stream newid field,value..."}, {text: "XADD stream newid field,small..."}, {text: "XADD stream newid field small"},
	{text: "XADD stream [NOMKSTREAM|MAXLEN 20|MAXLEN ~ 10|MINID id] newid field small"}, {text: "XLEN stream"}, {text: "XRANGE stream from to [COUNT count|]"},
	{text: "XREVRANGE stream to from [COUNT count|]"}, {text: "XREAD [COUNT count|] STREAMS stream id"}, {text: "XREAD STREAMS stream stream id 0"},
	{text: "XDEL stream id..."}, {text: "XTRIM stream [MAXLEN 30|MINID id|MAXLEN ~ 5]"}, {text: "XGROUP CREATE stream group [id|0|$] [MKSTREAM|]"},
	{text: "XGROUP CREATE stream group 0 MKSTREAM"}, {text: "XGROUP DESTROY stream group"}, {text: "XGROUP CREATECONSUMER stream group consumer"},
	{text: "XGROUP DELCONSUMER stream group consumer"}, {text: "XGROUP SETID stream group [id|0|$]"}, {text: "XREADGROUP GROUP group consumer COUNT count STREAMS stream >"},
	{text: "XREADGROUP GROUP group consumer [NOACK|] STREAMS stream [>|0|id]"}, {text: "XACK stream group id..."}, {text: "XPENDING stream group"},
	{text: "XPENDING stream group from to count [consumer|]", shape: idle}, {text: "XCLAIM stream group consumer 0 id... [JUSTID|FORCE|]"},
	{text: "XAUTOCLAIM stream group consumer 0 0-0 [COUNT count|JUSTID|]"}, {text: "XINFO STREAM stream"}, {text: "XINFO GROUPS stream"},
	{text: "XINFO CONSUMERS stream group", shape: idle}, {text: "XSETID stream newid"},
}

var bitmapRows = []row{
	{text: "SETBIT bitmap offset bit"}, {text: "SETBIT bitmap offset bit"}, {text: "GETBIT bitmap offset"}, {text: "BITCOUNT bitmap [index index|0 -1 BIT|]"},
	{text: "BITPOS bitmap bit [index|0 -1 BIT|]"}, {text: "BITOP [AND|OR|XOR] bitmap bitmap..."}, {text: "BITOP NOT bitmap bitmap"},
	{text: "BITFIELD bitmap SET u8 offset integer GET i16 offset"}, {text: "BITFIELD bitmap OVERFLOW [FAIL|SAT|WRAP] INCRBY u4 offset 9"},
	{text: "BITFIELD_RO bitmap GET u8 offset"}, {text: "SET bitmap value"}, {text: "GET bitmap"},
}

var hllRows = []row{
	{text: "PFADD hll member..."}, {text: "PFADD hll value..."}, {text: "PFADD hll"}, {text: "PFCOUNT hll"}, {text: "PFCOUNT hll hll"},
	{text: "PFMERGE hll hll hll"}, {text: "GET hll"},
}

var geoRows = []row{
	{text: "GEOADD geo lon lat member"}, {text: "GEOADD geo lon lat member"}, {text: "GEOADD geo [NX|XX|CH] lon lat member"}, {text: "GEODIST geo member member [KM|FT|]"},
	{text: "GEOPOS geo member..."}, {text: "GEOHASH geo member..."}, {text: "GEOSEARCH geo FROMLONLAT lon lat BYRADIUS 5000 KM ASC [WITHDIST WITHCOORD|WITHHASH|COUNT 3|]"},
	{text: "GEOSEARCH geo FROMMEMBER member BYBOX 4000 4000 KM DESC"}, {text: "GEOSEARCHSTORE geo geo FROMLONLAT lon lat BYRADIUS 9000 KM [STOREDIST|]"},
	{text: "GEORADIUS_RO geo lon lat 3000 KM ASC"}, {text: "GEORADIUSBYMEMBER geo member 3000 KM WITHDIST ASC"},
}

var keyRows = []row{
	{text: "DEL any..."}, {text: "DEL any"}, {text: "UNLINK any"}, {text: "EXISTS any..."}, {text: "TYPE any"}, {text: "TOUCH any..."},
	{text: "EXPIRE any ttl [NX|XX|]", kept: true}, {text: "PEXPIRE any ttlms"}, {text: "EXPIREAT any at [NX|XX|GT|LT|]"}, {text: "PEXPIREAT any atms"},
	{text: "EXPIRE any [0|-5]"}, {text: "PERSIST any"}, {text: "TTL any", shape: remaining}, {text: "PTTL any", shape: remaining},
	{text: "EXPIRETIME any", shape: until}, {text: "PEXPIRETIME any", shape: until}, {text: "RENAME any any"}, {text: "RENAMENX any any"},
	{text: "COPY any any [REPLACE|DB 1|DB 1 REPLACE|]"}, {text: "MOVE any 1"}, {text: "OBJECT ENCODING any"}, {text: "OBJECT REFCOUNT any"},
	{text: "DUMP any", shape: dump}, {text: "RESTORE any 0 nonsense REPLACE"}, {text: "KEYS pattern", shape: bag, kept: true},
	{text: "SCAN 0 MATCH mykeys COUNT everything", shape: scanBag, kept: true}, {text: "SCAN 0 MATCH pattern COUNT everything TYPE HASH", shape: scanBag, kept: true},
}

var serverRows = []row{
	{text: "PING"}, {text: "PING value"}, {text: "ECHO value"}, {text: "ECHO value"},
	{text: "DEBUG PROTOCOL [STRING|INTEGER|DOUBLE|NULL|ARRAY|SET|MAP|VERBATIM|TRUE|FALSE|BIGNUM]", kept: true},
	{text: "DEBUG PROTOCOL ATTRIB", kept: true, noRaw: true}, {text: "COMMAND INFO GET [SET|SORT|]", kept: true}, {text: "COMMAND DOCS [GET|APPEND|XADD]", kept: true},
	{text: "COMMAND GETKEYS MSET any,value...", kept: true}, {text: "CONFIG GET [maxmemory|appendonly|nothing]", kept: true}, {text: "ACL WHOAMI", kept: true},
	{text: "CLIENT GETNAME", kept: true}, {text: "CLIENT TRACKINGINFO", kept: true}, {text: "LOLWUT VERSION 99", kept: true}, {text: "PUBLISH own value"},
	{text: "PUBSUB NUMSUB own", kept: true}, {text: "SCRIPT EXISTS digest [digest|]", kept: true}, {text: "OBJECT HELP", kept: true},
	{text: "CLUSTER INFO", kept: true}, {text: "ACL GETUSER nobody", kept: true},
}

// evalRow is the one that EvalScript can run too.
var evalRow = row{text: "EVAL lua 2 any any value integer", kept: true}

var scriptRows = []row{
	evalRow, {text: "EVAL lua 2 string hash small 7", kept: true}, {text: "EVAL_RO lua 2 string list small 7", kept: true},
	{text: "EVALSHA digest 2 any any small 3", kept: true}, {text: "SCRIPT LOAD lua", kept: true}, {text: "FUNCTION LOAD [REPLACE|] library", kept: true},
	{text: "FCALL function 1 any small", kept: true}, {text: "FCALL_RO function 1 any small", kept: true},
}

// wrongRows are refused as they are.
var wrongRows = []row{
	{text: "NOSUCHCOMMAND value small"}, {text: "GET"}, {text: "SET string"}, {text: "SET string value EX abc"}, {text: "SET string value NX XX"},
	{text: "INCR hash"}, {text: "LPUSH zset value"}, {text: "HGET list field"}, {text: "SADD hash member"}, {text: "ZADD stream double member"},
	{text: "XADD list newid field value"}, {text: "GET set"}, {text: "PFADD hash member"}, {text: "GETBIT zset offset"}, {text: "GEOADD set lon lat member"},
	{text: "GEOADD geo 200 100 member"}, {text: "HINCRBY hash field abc"}, {text: "SETEX string 0 value"}, {text: "XGROUP NOSUCH stream"},
	{text: "CONFIG NOSUCH"}, {text: "OBJECT ENCODING"}, {text: "EVAL return 1"}, {text: "EVALSHA abc 0", kept: true}, {text: "EVAL lua -1", kept: true},
	{text: "ZADD zset abc member"}, {text: "BITOP NOT bitmap bitmap bitmap"}, {text: "RENAME own own"}, {text: "LSET own 0 value"}, {text: "XREADGROUP GROUP nogroup consumer STREAMS stream >"},
}

// blockingRows may block; they run on a connection of their own, a millisecond at most.
var blockingRows = []row{
	{text: "BLPOP list list 0.001", kept: true}, {text: "BRPOP list 0.001", kept: true}, {text: "BLMOVE list list LEFT RIGHT 0.001", kept: true},
	{text: "BLMPOP 0.001 2 list list LEFT COUNT count", kept: true}, {text: "BZPOPMIN zset zset 0.001", kept: true}, {text: "BZMPOP 0.001 1 zset MAX", kept: true},
	{text: "XREAD BLOCK 1 STREAMS stream id", kept: true}, {text: "BLPOP list abc", kept: true},
}
