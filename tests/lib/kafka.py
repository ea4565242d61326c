# SPDX-License-Identifier: Apache-2.0
"""Apache Kafka's own client and tools, fetched by Maven once, as users of both would run them."""
import os
import shutil
import subprocess

import kraft

LIB = os.path.join(kraft.BUILD, 'kafka-lib')
HOME = os.path.join(kraft.TOP, 'tests', 'bench', 'kafka')
TOOLS = 'org.apache.kafka.tools.'
JVM = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']


def classpath():
    if not os.path.isdir(LIB) or not any(n.startswith('kafka_2') for n in os.listdir(LIB)):
        os.makedirs(LIB, exist_ok=True)
        shutil.copy(os.path.join(HOME, 'pom.xml'), LIB)
        subprocess.run(['mvn', '-q', '-B', 'dependency:copy-dependencies', f'-DoutputDirectory={LIB}'], cwd=LIB, check=True)
    return f'{LIB}/*:{HOME}'


def java(*args, check=True, timeout=60, **options):
    """Runs a class or source file; returns the finished process."""
    done = subprocess.run(['java', '-Xmx512m', *JVM, '-cp', classpath(), *map(str, args)], capture_output=True, text=True, timeout=timeout, **options)
    if check:
        assert done.returncode == 0, f'{args}: {done.stdout[-2000:]}{done.stderr[-2000:]}'
    return done


def tool(name, *args, **options):
    """Runs one of Kafka's tools by the name of its class; returns what it printed."""
    return java(TOOLS + name, *args, **options).stdout


def compile_source(path, into):
    """javac, once; returns the class path entry."""
    made = os.path.join(into, os.path.basename(path).replace('.java', '.class'))
    if not os.path.exists(made) or os.path.getmtime(made) < os.path.getmtime(path):
        os.makedirs(into, exist_ok=True)
        subprocess.run(['javac', '-cp', classpath(), '-d', into, path], check=True)
    return into
