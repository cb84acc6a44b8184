# The locks of libraries for Ruby; README.md tells what a peer is asked, and what it answers.
# usage: ruby peer.rb LIBRARY NAME TTL-MS SOCKET…

require 'securerandom'

# The retry delay, in seconds.
RETRY = 0.03

# SET NX PX by hand, compare and delete, compare and expire.
class Plain
  attr_reader :key, :version

  def initialize(name, ttl, sockets)
    require 'redis'
    raise 'one server' if sockets.size != 1

    @key = name
    @version = "ruby-redis #{Redis::VERSION}"
    @ttl = ttl
    @client = Redis.new(path: sockets[0])
  end

  def acquire(blocking)
    @token = SecureRandom.uuid
    until @client.set(@key, @token, nx: true, px: @ttl)
      return false unless blocking

      sleep(RETRY)
    end
    true
  end

  def extend_it
    if_ours("redis.call('pexpire', KEYS[1], ARGV[2])")
  end

  def release
    if_ours("redis.call('del', KEYS[1])")
  end

  private

  def if_ours(call)
    script = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return #{call}"
    @client.eval(script, keys: [@key], argv: [@token, @ttl]) == 1
  end
end

# The gem redlock.
class RedlockRb
  attr_reader :key, :version

  def initialize(name, ttl, sockets)
    require 'redis-client'
    require 'redlock'
    @key = name
    @version = "redlock #{Redlock::VERSION}, ruby-redis-client #{RedisClient::VERSION}"
    @ttl = ttl
    servers = sockets.map { |socket| RedisClient.config(path: socket).new_client }
    @locks = Redlock::Client.new(servers, retry_delay: (RETRY * 1000).to_i, retry_jitter: 10)
  end

  def acquire(blocking)
    @lock = @locks.lock(@key, @ttl, retry_count: blocking ? 1_000_000 : 0)
  end

  def extend_it
    @locks.lock(@key, @ttl, extend: @lock, extend_only_if_locked: true)
  end

  def release
    @locks.unlock(@lock)
    true # it does not tell
  end
end

LIBRARIES = { 'ruby-redis' => Plain, 'redlock-rb' => RedlockRb }.freeze

# Reads a number and writes one more; fails if another process is at it.
def count_once(path)
  File.open("#{path}.inside", File::CREAT | File::EXCL | File::WRONLY).close
  File.write(path, File.read(path).to_i + 1)
  File.write("#{path}.log", "peer\n", mode: 'a')
  File.unlink("#{path}.inside")
end

$stdout.sync = true
library, name, ttl, *sockets = ARGV
lock = LIBRARIES.fetch(library).new(name, ttl.to_i, sockets)
puts "ready #{lock.key} #{lock.version}"
while (line = $stdin.gets)
  command, path = line.split
  case command
  when 'try'
    puts lock.acquire(false) ? 'held' : 'busy'
  when 'wait'
    unless lock.acquire(false)
      puts 'waiting'
      lock.acquire(true)
    end
    puts 'held'
  when 'extend'
    puts lock.extend_it ? 'extended' : 'lost'
  when 'release'
    puts lock.release ? 'released' : 'lost'
  when 'count'
    turns = 0
    until File.exist?("#{path}.enough")
      lock.acquire(true)
      count_once(path)
      lock.release
      turns += 1
    end
    puts "counted #{turns}"
  end
end
