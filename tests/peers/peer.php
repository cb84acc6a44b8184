<?php
// The locks of libraries for PHP, on php-redis; README.md tells what a peer is asked, and what it
// answers. The libraries are in include_path.
// usage: php peer.php LIBRARY NAME TTL-MS SOCKET…

use Symfony\Component\Lock\Exception\LockConflictedException;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\LockInterface;
use Symfony\Component\Lock\Store\CombinedStore;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\Lock\Strategy\ConsensusStrategy;

// The retry delay, in milliseconds.
const RETRY = 30;

error_reporting(E_ALL & ~E_DEPRECATED); // of libraries that are older than this PHP
set_error_handler(function ($level, $message, $file, $line) {
    if (!(error_reporting() & $level)) {
        return true;
    }
    throw new ErrorException($message, 0, $level, $file, $line);
});
function client(string $socket): Redis
{
    $client = new Redis();
    $client->connect($socket);
    return $client;
}

// SET NX PX by hand, compare and delete, compare and expire.
class Plain
{
    public string $version;
    private Redis $client;
    private string $token;

    public function __construct(public string $key, private int $ttl, array $sockets)
    {
        [$socket] = $sockets;
        $this->version = 'php-redis ' . phpversion('redis');
        $this->client = client($socket);
    }

    public function acquire(bool $blocking): bool
    {
        $this->token = bin2hex(random_bytes(16));
        while (!$this->client->set($this->key, $this->token, ['nx', 'px' => $this->ttl])) {
            if (!$blocking) {
                return false;
            }
            usleep(RETRY * 1000);
        }
        return true;
    }

    private function ifOurs(string $call): bool
    {
        $script = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return $call";
        return $this->client->eval($script, [$this->key, $this->token, $this->ttl], 1) === 1;
    }

    public function extend(): bool
    {
        return $this->ifOurs("redis.call('pexpire', KEYS[1], ARGV[2])");
    }

    public function release(): bool
    {
        return $this->ifOurs("redis.call('del', KEYS[1])");
    }
}

// Cache::lock() of Laravel. It extends nothing.
class Laravel
{
    public string $version;
    private Illuminate\Cache\PhpRedisLock $lock;

    public function __construct(public string $key, private int $ttl, private array $sockets)
    {
        require_once 'Illuminate/Cache/autoload.php';
        require_once 'Illuminate/Redis/autoload.php';
        [$socket] = $sockets;
        $this->version = getenv('PEER_LARAVEL') . ', php-redis ' . phpversion('redis');
        $connection = new Illuminate\Redis\Connections\PhpRedisConnection(client($socket));
        $this->lock = new Illuminate\Cache\PhpRedisLock($connection, $key, intdiv($ttl, 1000));
        $this->lock->betweenBlockedAttemptsSleepFor(RETRY);
    }

    public function acquire(bool $blocking): bool
    {
        return $blocking ? $this->lock->block(PHP_INT_MAX) : $this->lock->get();
    }

    public function release(): bool
    {
        return $this->lock->release();
    }
}

// The RedisStore of Symfony's Lock; several of them under its CombinedStore.
class Symfony
{
    public string $version;
    private LockInterface $lock;

    public function __construct(public string $key, int $ttl, array $sockets)
    {
        require_once 'Symfony/Component/Lock/autoload.php';
        $this->version = getenv('PEER_SYMFONY') . ', php-redis ' . phpversion('redis');
        $stores = array_map(fn ($socket) => new RedisStore(client($socket), $ttl / 1000), $sockets);
        $store = count($stores) === 1
            ? $stores[0]
            : new CombinedStore($stores, new ConsensusStrategy());
        $this->lock = (new LockFactory($store))->createLock($key, $ttl / 1000, false);
    }

    public function acquire(bool $blocking): bool
    {
        return $this->lock->acquire($blocking);
    }

    public function extend(): bool
    {
        try {
            $this->lock->refresh();
            return true;
        } catch (LockConflictedException) {
            return false;
        }
    }

    public function release(): bool
    {
        $this->lock->release();
        return true; // it does not tell
    }
}

const LIBRARIES = [
    'phpredis' => Plain::class,
    'laravel' => Laravel::class,
    'symfony' => Symfony::class,
];

// Reads a number and writes one more; fails if another process is at it.
function count_once(string $path): void
{
    fclose(fopen("$path.inside", 'x'));
    file_put_contents($path, 1 + (int) file_get_contents($path));
    file_put_contents("$path.log", "peer\n", FILE_APPEND);
    unlink("$path.inside");
}

function answer(string $line): void
{
    fwrite(STDOUT, "$line\n");
}

[, $library, $name, $ttl] = $argv;
$class = LIBRARIES[$library];
$lock = new $class($name, (int) $ttl, array_slice($argv, 4));
answer("ready $lock->key $lock->version");
while (($line = fgets(STDIN)) !== false) {
    $words = explode(' ', trim($line));
    switch ($words[0]) {
        case 'try':
            answer($lock->acquire(false) ? 'held' : 'busy');
            break;
        case 'wait':
            if (!$lock->acquire(false)) {
                answer('waiting');
                $lock->acquire(true);
            }
            answer('held');
            break;
        case 'extend':
            answer($lock->extend() ? 'extended' : 'lost');
            break;
        case 'release':
            answer($lock->release() ? 'released' : 'lost');
            break;
        case 'count':
            for ($turns = 0; !is_file("$words[1].enough"); ++$turns) {
                $lock->acquire(true);
                count_once($words[1]);
                $lock->release();
                clearstatcache();
            }
            answer("counted $turns");
            break;
    }
}
