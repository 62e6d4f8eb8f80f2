# attention_naive.cu on this CPU, as attention_naive.so and, with every access watched, attention_naive_checked.so.
cmake_minimum_required(VERSION 3.25)
project(attention_naive LANGUAGES CXX)
set(CMAKE_BUILD_TYPE Release)
find_package(attest REQUIRED)
attest_add_simt_kernel(attention_naive SOURCES attention_naive.cu attention_naive_glue.cpp TRANSLATE)
