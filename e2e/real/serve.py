"""Serves a small model over HTTP on the loopback with llama.cpp's own server.

    serve.py WEIGHTS NAME

Prints `ready HOST:PORT` on its first line once it answers, and then what the server logs. Ends
when its standard input does, so that it never outlives the test that started it.
"""

import argparse
import sys

import xllamacpp


def parameters(weights, name):
    """Two conversations at a time, each with room for a few thousand tokens.

    One thread: several wait for each other by spinning, and stall where cores are busy.
    """
    given = xllamacpp.CommonParams()
    given.model.path = weights
    # Some releases keep several names for a model, some one.
    given.model_alias = {name} if isinstance(given.model_alias, (set, frozenset)) else name
    given.port = 0
    given.n_ctx = 8192
    given.n_parallel = 2
    given.n_gpu_layers = 0
    given.cpuparams.n_threads = 1
    given.cpuparams_batch.n_threads = 1
    given.use_jinja = True
    return given


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("weights")
    arguments.add_argument("name")
    asked = arguments.parse_args()
    server = xllamacpp.Server(parameters(asked.weights, asked.name))
    print("ready", server.listening_address, flush=True)
    sys.stdin.read()


main()
