"""Rounds that threads play side by side, until all are done or one of them fails."""
import random
import threading


def play_all(play, todo, lanes, seed):
    """`play(lane, chance, item)` for each item, in `lanes` threads; `chance` is the random source of
    the lane. -> the exceptions that ended it"""
    failures = []

    def play_lane(lane):
        chance = random.Random(f"{seed} {lane}")
        while todo and not failures:
            try:
                item = todo.pop()
            except IndexError:
                return
            try:
                play(lane, chance, item)
            except Exception as failure:  # of a thread: it would be printed, and nothing more
                failures.append(failure)

    threads = [threading.Thread(target=play_lane, args=(lane,)) for lane in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures
